import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.net.BookieId;
import org.apache.bookkeeper.util.AvailabilityOfEntriesOfLedger;

/**
 * Whether closed ledgers have all their copies: of each fragment every bookie lives, and holds the first and the last
 * entry that it should. BookKeeper looks no closer unless it is set to.
 */
final class Copies {
    private final BookKeeper client;
    private final BookKeeperAdmin administrator;

    Copies(BookKeeper client, BookKeeperAdmin administrator) {
        this.client = client;
        this.administrator = administrator;
    }

    /** Of the first ledger that lacks anything, in words; null if none does. */
    String lack() throws Exception {
        Set<BookieId> living = new HashSet<>(administrator.getAvailableBookies());
        living.addAll(administrator.getReadOnlyBookies());
        for (long ledger : administrator.listLedgers()) {
            LedgerMetadata metadata = client.getLedgerManager().readLedgerMetadata(ledger).get().getValue();
            String lack = metadata.isClosed() ? lackOf(ledger, metadata, living) : null;
            if (lack != null) {
                return lack + " of ledger " + ledger;
            }
        }
        return null;
    }

    private String lackOf(long ledger, LedgerMetadata metadata, Set<BookieId> living) throws Exception {
        NavigableMap<Long, ? extends List<BookieId>> ensembles = metadata.getAllEnsembles();
        for (Map.Entry<Long, ? extends List<BookieId>> fragment : ensembles.entrySet()) {
            Long next = ensembles.higherKey(fragment.getKey());
            long last = Math.min(metadata.getLastEntryId(), next == null ? Long.MAX_VALUE : next - 1);
            String lack = lackOf(ledger, metadata, fragment.getKey(), last, fragment.getValue(), living);
            if (lack != null) {
                return lack;
            }
        }
        return null;
    }

    private String lackOf(
            long ledger, LedgerMetadata metadata, long first, long last, List<BookieId> ensemble, Set<BookieId> living)
            throws Exception {
        Map<BookieId, List<Long>> should = new TreeMap<>((one, other) -> one.getId().compareTo(other.getId()));
        for (long entry = first; entry <= last; entry++) {
            for (BookieId bookie : Ledgers.writeSet(metadata, entry)) {
                should.computeIfAbsent(bookie, none -> new ArrayList<>()).add(entry);
            }
        }
        Map<BookieId, AvailabilityOfEntriesOfLedger> held = new TreeMap<>(((TreeMap<BookieId, ?>) should).comparator());
        for (BookieId bookie : should.keySet()) {
            held.put(bookie, living.contains(bookie) ? heldBy(bookie, ledger) : null);
        }
        for (Map.Entry<BookieId, List<Long>> each : should.entrySet()) {
            List<Long> entries = each.getValue();
            for (long entry : List.of(entries.get(0), entries.get(entries.size() - 1))) {
                // What nobody has cannot come back: whether it may be lost is judged where it is read.
                boolean isLeft = held.values().stream().anyMatch(its -> its != null && its.isEntryAvailable(entry));
                AvailabilityOfEntriesOfLedger its = held.get(each.getKey());
                if (isLeft && (its == null || !its.isEntryAvailable(entry))) {
                    String what = living.contains(each.getKey()) ? " lacks" : ", which does not live, should have";
                    return "bookie " + each.getKey() + what + " entry " + entry;
                }
            }
        }
        return null;
    }

    /** Null where it has nothing of the ledger. */
    private AvailabilityOfEntriesOfLedger heldBy(BookieId bookie, long ledger) throws Exception {
        try {
            return administrator.asyncGetListOfEntriesOfLedger(bookie, ledger).get();
        } catch (ExecutionException error) {
            if (Ledgers.isAbsent(error.getCause())) {
                return null;
            }
            throw error;
        }
    }
}
