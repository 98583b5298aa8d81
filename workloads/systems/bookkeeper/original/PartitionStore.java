import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** Who owns a partition, and which ledgers are its log: keys in ZooKeeper. */
final class PartitionStore {
    /** The ledgers of a partition, with the version under which they were read; -1: there is no list yet. */
    static final class Listed {
        final List<Long> ledgers;
        final int version;

        Listed(List<Long> ledgers, int version) {
            this.ledgers = List.copyOf(ledgers);
            this.version = version;
        }
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String ROOT = "/partitions";

    private final String servers;
    private final int timeoutMs;
    private final byte[] broker;
    private ZooKeeper session;

    PartitionStore(String servers, int timeoutMs, String broker) {
        this.servers = servers;
        this.timeoutMs = timeoutMs;
        this.broker = broker.getBytes(StandardCharsets.UTF_8);
    }

    /** A session that is not over, as far as is known here. */
    synchronized ZooKeeper session() throws Exception {
        if (session == null || !session.getState().isAlive()) {
            CountDownLatch connected = new CountDownLatch(1);
            session = new ZooKeeper(servers, timeoutMs, event -> {
                if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                    connected.countDown();
                }
            });
            connected.await(timeoutMs, TimeUnit.MILLISECONDS);
        }
        return session;
    }

    /** Waits for the owner's key. It is lost with the session that is returned. */
    ZooKeeper take(String partition) throws Exception {
        String key = place(partition) + "/owner";
        while (true) {
            ZooKeeper own = session();
            try {
                own.create(key, broker, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
                return own;
            } catch (KeeperException.NoNodeException none) {
                makePlace(own, partition);
            } catch (KeeperException.NodeExistsException taken) {
                CountDownLatch gone = new CountDownLatch(1);
                Stat owner = own.exists(key, event -> gone.countDown());
                if (owner != null && owner.getEphemeralOwner() == own.getSessionId()) {
                    return own; // An answer was lost.
                }
                if (owner != null) {
                    gone.await(1, TimeUnit.SECONDS);
                }
            }
        }
    }

    Listed read(String partition) throws Exception {
        Stat stat = new Stat();
        try {
            byte[] value = session().getData(place(partition) + "/ledgers", false, stat);
            return new Listed(JSON.readValue(value, new TypeReference<List<Long>>() {}), stat.getVersion());
        } catch (KeeperException.NoNodeException none) {
            return new Listed(List.of(), -1);
        }
    }

    /** The list with this ledger at its end, if nobody else has changed it. */
    Listed append(String partition, Listed listed, long ledger) throws Exception {
        List<Long> ledgers = new ArrayList<>(listed.ledgers);
        ledgers.add(ledger);
        byte[] value = JSON.writeValueAsBytes(ledgers);
        String key = place(partition) + "/ledgers";
        while (true) {
            try {
                if (listed.version < 0) {
                    session().create(key, value, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
                    return new Listed(ledgers, 0);
                }
                return new Listed(ledgers, session().setData(key, value, listed.version).getVersion());
            } catch (KeeperException.ConnectionLossException | KeeperException.SessionExpiredException open) {
                // It may have been written or not: what is there now decides.
                Listed now = settled(partition);
                if (now.ledgers.equals(ledgers)) {
                    return now;
                }
                if (now.version != listed.version) {
                    throw open;
                }
            }
        }
    }

    private Listed settled(String partition) throws Exception {
        while (true) {
            try {
                return read(partition);
            } catch (KeeperException.ConnectionLossException | KeeperException.SessionExpiredException again) {
                TimeUnit.MILLISECONDS.sleep(100);
            }
        }
    }

    private static String place(String partition) {
        return ROOT + "/" + partition;
    }

    private static void makePlace(ZooKeeper session, String partition) throws Exception {
        for (String path : List.of(ROOT, place(partition))) {
            try {
                session.create(path, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            } catch (KeeperException.NodeExistsException there) {
                continue;
            }
        }
    }
}
