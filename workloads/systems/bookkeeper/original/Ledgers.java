import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.channel.nio.NioEventLoopGroup;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import org.apache.bookkeeper.bookie.BookieException;
import org.apache.bookkeeper.bookie.Cookie;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.common.util.OrderedExecutor;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.meta.MetadataDrivers;
import org.apache.bookkeeper.net.BookieId;
import org.apache.bookkeeper.proto.BookieClient;
import org.apache.bookkeeper.proto.BookieClientImpl;
import org.apache.bookkeeper.proto.BookieProtocol;
import org.apache.bookkeeper.proto.DataFormats.LedgerMetadataFormat;
import org.apache.bookkeeper.proto.checksum.DigestManager;
import org.apache.bookkeeper.stats.NullStatsLogger;
import org.apache.bookkeeper.versioning.Versioned;

/** What the release's client does for a broker, and its administrator's client for those who look after bookies. */
final class Ledgers {
    private static final byte[] PASSWORD = {};
    private static final int READ_ENTRIES = 100;
    private static final BookKeeper.DigestType DIGEST = BookKeeper.DigestType.CRC32C;

    private final ClientConfiguration settings;
    private final int ensemble, writeQuorum, ackQuorum;
    private final BookKeeper client;
    private final BookKeeperAdmin administrator;
    private final BookieClient atBookies;
    private final Map<Long, LedgerHandle> closed = new ConcurrentHashMap<>();

    Ledgers(ClientConfiguration settings, int ensemble, int writeQuorum, int ackQuorum) throws Exception {
        this.settings = settings;
        this.ensemble = ensemble;
        this.writeQuorum = writeQuorum;
        this.ackQuorum = ackQuorum;
        client = new BookKeeper(settings);
        administrator = new BookKeeperAdmin(client, settings);
        atBookies = new BookieClientImpl(
                settings,
                new NioEventLoopGroup(1),
                UnpooledByteBufAllocator.DEFAULT,
                OrderedExecutor.newBuilder().numThreads(1).name("at-bookies").build(),
                Executors.newSingleThreadScheduledExecutor(),
                NullStatsLogger.INSTANCE,
                administrator.getBookieAddressResolver());
    }

    LedgerHandle create() throws Exception {
        return client.createLedger(ensemble, writeQuorum, ackQuorum, DIGEST, PASSWORD);
    }

    /** Fences it, finds its end and closes it, if it is not closed. */
    void recover(long ledger) throws Exception {
        client.openLedger(ledger, DIGEST, PASSWORD).close();
    }

    /** To read a ledger that is closed. */
    LedgerHandle closed(long ledger) throws Exception {
        LedgerHandle handle = ended(ledger);
        if (handle == null) {
            throw new Refusal("unread", "ledger " + ledger + " is not closed");
        }
        return handle;
    }

    /** From a position on, as one bookie has it: an entry that it lacks, as others may have it; lost ones are passed. */
    Found readAt(BookieId bookie, List<Long> list, Found found) throws Exception {
        while (found.place < list.size() && found.entries.isEmpty()) {
            LedgerHandle ledger = ended(list.get(found.place));
            if (ledger == null) {
                found.isOpen = true;
                break;
            }
            while (found.entry <= ledger.getLastAddConfirmed() && found.entries.size() < READ_ENTRIES) {
                byte[] payload = entryAt(bookie, ledger, found.entry);
                if (payload == null) {
                    found.pass();
                } else {
                    found.add(found.entry, payload);
                }
            }
            if (found.entry > ledger.getLastAddConfirmed()) {
                found.nextLedger();
            }
        }
        return found;
    }

    /** All that a bookie held gets copies elsewhere, from those who have it, and it may start anew without a disk. */
    void replace(BookieId bookie) throws Exception {
        administrator.recoverBookieData(bookie);
        MetadataDrivers.runFunctionWithRegistrationManager(new ServerConfiguration(settings), registered -> {
            try {
                Versioned<Cookie> cookie = Cookie.readFromRegistrationManager(registered, bookie);
                cookie.getValue().deleteFromRegistrationManager(registered, bookie, cookie.getVersion());
            } catch (BookieException.CookieNotFoundException none) {
                return null;
            } catch (BookieException error) {
                throw new IllegalStateException(error);
            }
            return null;
        });
    }

    /** What closed ledgers lack, in words; null if nothing. */
    String lack() throws Exception {
        return new Copies(client, administrator).lack();
    }

    boolean lives(BookieId bookie) throws Exception {
        return administrator.getAvailableBookies().contains(bookie);
    }

    /** Null where it is not closed. */
    private LedgerHandle ended(long ledger) throws Exception {
        LedgerHandle known = closed.get(ledger);
        if (known == null) {
            known = client.openLedgerNoRecovery(ledger, DIGEST, PASSWORD);
            if (!known.isClosed()) {
                known.close();
                return null;
            }
            closed.put(ledger, known);
        }
        return known;
    }

    /** Null where nobody has it. */
    private byte[] entryAt(BookieId bookie, LedgerHandle ledger, long entry) throws Exception {
        boolean should = writeSet(ledger.getLedgerMetadata(), entry).contains(bookie);
        byte[] payload = should ? copyAt(bookie, ledger, entry) : null;
        if (payload != null) {
            return payload;
        }
        try (LedgerEntries entries = ledger.read(entry, entry)) {
            return entries.getEntry(entry).getEntryBytes();
        } catch (BKException error) {
            if (isAbsent(error)) {
                return null;
            }
            throw error;
        }
    }

    /** The bookies that should have an entry: they are counted round its ensemble from entry 0. */
    static List<BookieId> writeSet(LedgerMetadata metadata, long entry) {
        List<BookieId> ensemble = metadata.getEnsembleAt(entry);
        List<BookieId> found = new ArrayList<>();
        for (int copy = 0; copy < metadata.getWriteQuorumSize(); copy++) {
            found.add(ensemble.get((int) ((entry + copy) % ensemble.size())));
        }
        return found;
    }

    /** Null where this bookie has no copy. */
    private byte[] copyAt(BookieId bookie, LedgerHandle ledger, long entry) throws Exception {
        CompletableFuture<byte[]> copy = new CompletableFuture<>();
        DigestManager digest = DigestManager.instantiate(
                ledger.getId(),
                PASSWORD,
                LedgerMetadataFormat.DigestType.CRC32C,
                UnpooledByteBufAllocator.DEFAULT,
                settings.getUseV2WireProtocol());
        atBookies.readEntry(bookie, ledger.getId(), entry, (code, ofLedger, number, buffer, context) -> {
            try {
                if (isAbsent(code)) {
                    copy.complete(null);
                } else if (code != BKException.Code.OK) {
                    copy.completeExceptionally(BKException.create(code));
                } else {
                    ByteBuf payload = digest.verifyDigestAndReturnData(entry, buffer);
                    copy.complete(ByteBufUtil.getBytes(payload));
                }
            } catch (BKException error) {
                copy.completeExceptionally(error);
            }
        }, null, BookieProtocol.FLAG_NONE);
        return copy.get();
    }

    static boolean isAbsent(Throwable error) {
        return error instanceof BKException && isAbsent(((BKException) error).getCode());
    }

    private static boolean isAbsent(int code) {
        return code == BKException.Code.NoSuchEntryException
                || code == BKException.Code.NoSuchLedgerExistsException
                || code == BKException.Code.NoSuchLedgerExistsOnMetadataServerException;
    }
}
