import java.io.File;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.config.FlushDiskType;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/**
 * What a store makes of its files where its log was cut, overwritten, and its process killed. No cluster, no timing.
 *
 * Run it twice on one new folder, with the jars of a release: "first" ends by a halt, as by a kill; "second" opens the
 * files again. With "first queue" more messages are written after the cut than were cut off, two of queue 0 and three of
 * queue 1; with "first log" only one.
 *
 *   javac -cp "lib/*" StaleConsumeQueueUnits.java
 *   java --add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED \
 *       --add-exports=java.base/jdk.internal.ref=ALL-UNNAMED -cp "lib/*:." StaleConsumeQueueUnits folder first queue
 *   java … StaleConsumeQueueUnits folder second
 *
 * For 5.1.x the last argument of DefaultMessageStore's constructor is left out.
 */
public class StaleConsumeQueueUnits {
    private static final String TOPIC = "T";

    public static void main(String[] arguments) throws Exception {
        DefaultMessageStore store = open(arguments[0]);
        if (arguments[1].equals("first")) {
            put(store, 0, "a0");
            put(store, 1, "b0");
            long cut = put(store, 0, "x1");
            put(store, 0, "x2");
            put(store, 0, "x3");
            show(store, "before the cut");
            store.truncateDirtyFiles(cut);
            show(store, "after the cut");
            if (arguments[2].equals("queue")) {
                put(store, 1, "c1");
                put(store, 0, "a1");
                put(store, 1, "c2");
                put(store, 1, "c3");
            } else {
                put(store, 0, "a1");
            }
            show(store, "with new messages");
            Thread.sleep(1500);
        } else {
            show(store, "opened again");
            put(store, 0, "a2");
            show(store, "with one more");
        }
        Runtime.getRuntime().halt(0);
    }

    private static DefaultMessageStore open(String folder) throws Exception {
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(folder);
        config.setStorePathCommitLog(folder + File.separator + "commitlog");
        config.setMappedFileSizeCommitLog(1024 * 1024);
        config.setMappedFileSizeConsumeQueue(20 * 1000);
        config.setFlushDiskType(FlushDiskType.SYNC_FLUSH);
        config.setHaListenPort(0);
        BrokerConfig broker = new BrokerConfig();
        DefaultMessageStore store = new DefaultMessageStore(config, new BrokerStatsManager(broker),
            (topic, queueId, offset, tags, time, filter, properties) -> { }, broker, new ConcurrentHashMap<>());
        if (!store.load()) {
            throw new IllegalStateException("the files cannot be loaded");
        }
        store.start();
        return store;
    }

    private static long put(DefaultMessageStore store, int queueId, String body) {
        MessageExtBrokerInner message = new MessageExtBrokerInner();
        message.setTopic(TOPIC);
        message.setQueueId(queueId);
        message.setBody(body.getBytes(StandardCharsets.UTF_8));
        MessageAccessor.setProperties(message, new HashMap<>());
        message.setPropertiesString("");
        message.setBornTimestamp(System.currentTimeMillis());
        message.setBornHost(new InetSocketAddress("127.0.0.1", 1));
        message.setStoreHost(new InetSocketAddress("127.0.0.1", 2));
        return store.putMessage(message).getAppendMessageResult().getWroteOffset();
    }

    private static void show(DefaultMessageStore store, String when) throws Exception {
        while (store.dispatchBehindBytes() > 0) {
            Thread.sleep(10);
        }
        Thread.sleep(300);
        for (int queueId = 0; queueId < 2; queueId++) {
            StringBuilder line = new StringBuilder(when + ": queue " + queueId + " has");
            for (long offset = 0; offset < store.getMaxOffsetInQueue(TOPIC, queueId); offset++) {
                GetMessageResult found = store.getMessage("g", TOPIC, queueId, offset, 1, null);
                MessageExt message = found.getMessageMapedList().isEmpty() ? null
                    : MessageDecoder.decode(found.getMessageMapedList().get(0).getByteBuffer().slice());
                line.append(" ").append(offset).append(": ").append(message == null ? "nothing" : new String(
                    message.getBody(), StandardCharsets.UTF_8) + " of queue " + message.getQueueId() + ",");
                found.release();
            }
            System.out.println(line);
        }
    }
}
