import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.LedgerEntry;
import org.apache.zookeeper.ZooKeeper;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A partition as the broker has it that owns it, or would like to: the same as the partition that comes with Stormproof.
 *
 * <p>An owner opens the last ledger with recovery, also if another one writes that, appends one of its own to the list,
 * and only then serves. A ledger that is full is closed, and only then the next one is listed.
 */
final class OwnedPartition implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(OwnedPartition.class);
    private static final long HOLD_MS = 2_000, PAUSE_MS = 200;
    private static final int READ_ENTRIES = 100;

    private final String name;
    private final PartitionStore store;
    private final Ledgers ledgers;
    private final int rollEntries;

    private PartitionStore.Listed listed = new PartitionStore.Listed(List.of(), -1);
    private LedgerHandle current;
    private boolean owns, isOpen, isLost;
    private int sent, pending;

    OwnedPartition(String name, PartitionStore store, Ledgers ledgers, int rollEntries) {
        this.name = name;
        this.store = store;
        this.ledgers = ledgers;
        this.rollEntries = rollEntries;
    }

    synchronized boolean owns() {
        return owns;
    }

    /** Where the entry is: the place of its ledger in the list, and its number there. */
    long[] send(byte[] payload) throws Exception {
        CompletableFuture<Long> added;
        LedgerHandle ledger;
        int place;
        synchronized (this) {
            awaitOpen();
            ledger = current;
            place = listed.ledgers.size() - 1;
            pending++;
            sent++;
            if (sent >= rollEntries) {
                close();
            }
            added = ledger.appendAsync(payload);
        }
        try {
            return new long[] {place, added.get()};
        } catch (ExecutionException error) {
            lose(ledger, error.getCause());
            throw new Refusal("failed", error.getCause());
        } finally {
            synchronized (this) {
                pending -= ledger == current ? 1 : 0;
                notifyAll();
            }
        }
    }

    /** From a position on. */
    Found read(int place, long entry) throws Exception {
        LedgerHandle writing;
        List<Long> list;
        synchronized (this) {
            if (current == null) {
                throw new Refusal("not-serving", "it is not served here");
            }
            writing = current;
            list = listed.ledgers;
        }
        Found found = new Found(place, entry);
        while (found.place < list.size() && found.entries.size() < READ_ENTRIES) {
            long ledger = list.get(found.place);
            boolean isCurrent = ledger == writing.getId();
            LedgerHandle handle = isCurrent ? writing : ledgers.closed(ledger);
            long last = handle.getLastAddConfirmed();
            if (found.entry <= last) {
                try (LedgerEntries entries = handle.read(found.entry, Math.min(last, found.entry + READ_ENTRIES - 1))) {
                    for (LedgerEntry each : entries) {
                        found.add(each.getEntryId(), each.getEntryBytes());
                    }
                }
            } else if (isCurrent) {
                break;
            } else {
                found.nextLedger();
            }
        }
        return found;
    }

    /** Close the ledger that takes entries, if it has any, and go on in another one. */
    synchronized void seal() throws Exception {
        awaitOpen();
        if (sent > 0) {
            close();
            awaitOpen();
        }
    }

    private void awaitOpen() throws Exception {
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(HOLD_MS);
        while (!isOpen) {
            long leftMs = TimeUnit.NANOSECONDS.toMillis(until - System.nanoTime());
            if (!owns || leftMs <= 0) {
                throw new Refusal("not-serving", "it is not served here");
            }
            wait(leftMs);
        }
    }

    private synchronized void close() {
        isOpen = false;
        notifyAll();
    }

    private synchronized void lose(LedgerHandle ledger, Throwable because) {
        if (ledger == current && !isLost) {
            LOG.info("lost ledger {} of {}: {}", ledger.getId(), name, because.toString());
            isLost = true;
            close();
        }
    }

    @Override
    public void run() {
        while (true) {
            try {
                ZooKeeper tenure = store.take(name);
                LOG.info("owns {}", name);
                begin();
                while (tenure.getState().isAlive()) {
                    serve(tenure);
                    TimeUnit.MILLISECONDS.sleep(PAUSE_MS);
                }
                LOG.info("owns {} no more", name);
            } catch (Exception error) {
                LOG.warn("interrupted as the owner of {}: {}", name, error.toString());
            } finally {
                end();
            }
        }
    }

    private synchronized void begin() {
        owns = true;
    }

    private synchronized void end() {
        owns = isOpen = false;
        current = null;
        notifyAll();
    }

    private void serve(ZooKeeper tenure) throws Exception {
        try {
            PartitionStore.Listed now = store.read(name);
            if (!now.ledgers.isEmpty()) {
                ledgers.recover(now.ledgers.get(now.ledgers.size() - 1));
            }
            LedgerHandle ledger = listNext(now);
            while (writeUntilFull(ledger, tenure)) {
                ledger.close();
                LOG.info("closed ledger {} of {}", ledger.getId(), name);
                ledger = listNext(listed);
            }
        } catch (Exception error) {
            LOG.warn("interrupted in {}: {}", name, error.toString());
        }
    }

    private LedgerHandle listNext(PartitionStore.Listed before) throws Exception {
        LedgerHandle ledger = ledgers.create();
        PartitionStore.Listed after = store.append(name, before, ledger.getId());
        LOG.info("lists ledger {} of {} at place {}", ledger.getId(), name, after.ledgers.size() - 1);
        synchronized (this) {
            listed = after;
            current = ledger;
            isLost = false;
            sent = pending = 0;
        }
        return ledger;
    }

    /** Whether it is to be closed: it is full and all is acknowledged, or sealed. False where nothing more comes of it. */
    private synchronized boolean writeUntilFull(LedgerHandle ledger, ZooKeeper tenure) throws InterruptedException {
        isOpen = true;
        notifyAll();
        while (tenure.getState().isAlive() && !isLost && (isOpen || pending > 0)) {
            wait(PAUSE_MS);
        }
        isOpen = false;
        return tenure.getState().isAlive() && !isLost;
    }
}
