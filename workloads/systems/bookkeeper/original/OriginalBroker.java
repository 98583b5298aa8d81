import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.bookkeeper.net.BookieId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A broker of partitions whose ledgers are written by the release's own client. One line of JSON is a request, one the
 * answer:
 *
 * <ul>
 *   <li>send {partition, messages}: {place, entry}, once it is acknowledged; messages are any JSON value
 *   <li>read {partition, place, entry}: {entries: [[place, entry, messages]], place, entry}, and where to read on
 *   <li>read-at {partition, place, entry, bookie}: the same of closed ledgers as one bookie shows them, and open: whether
 *       a ledger that is not closed is next
 *   <li>seal {partition}: the ledger that takes entries is closed
 *   <li>owns {partition}: {owns}
 *   <li>replace {bookie}: what it held is on others, and it may start anew; lives {bookie}: {lives}
 *   <li>lack: {lack}, what closed ledgers lack, in words, or null
 * </ul>
 *
 * <p>Instead of these: {error, detail}. Nothing was done where the error is not-serving or malformed.
 */
public class OriginalBroker {
    private static final Logger LOG = LoggerFactory.getLogger(OriginalBroker.class);
    private static final ObjectMapper JSON = new ObjectMapper();

    private final PartitionStore store;
    private final Ledgers ledgers;
    private final Map<String, OwnedPartition> partitions = new TreeMap<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();

    private OriginalBroker(JsonNode settings) throws Exception {
        String servers = settings.get("metadataServers").asText();
        int sessionMs = settings.get("sessionTimeout").asInt();
        ClientConfiguration client = new ClientConfiguration();
        client.setMetadataServiceUri("zk+hierarchical://" + servers.replace(',', ';') + "/ledgers");
        client.setZkTimeout(sessionMs);
        client.setAddEntryTimeout(settings.get("bookieTimeout").asInt());
        client.setReadEntryTimeout(settings.get("bookieTimeout").asInt());
        client.setNumIOThreads(2);
        ledgers = connected(settings, client);
        store = new PartitionStore(servers, sessionMs, settings.get("name").asText());
        for (JsonNode name : settings.get("partitions")) {
            int rollEntries = settings.get("rollEntries").asInt();
            partitions.put(name.asText(), new OwnedPartition(name.asText(), store, ledgers, rollEntries));
        }
    }

    public static void main(String[] arguments) throws Exception {
        JsonNode settings = JSON.readTree(new File(arguments[0]));
        new OriginalBroker(settings).serve(settings.get("brokerPort").asInt());
    }

    /** Waits for ZooKeeper, and for the layout that the first bookie makes there. */
    private static Ledgers connected(JsonNode settings, ClientConfiguration client) throws Exception {
        while (true) {
            try {
                return new Ledgers(
                        client,
                        settings.get("ensembleSize").asInt(),
                        settings.get("writeQuorum").asInt(),
                        settings.get("ackQuorum").asInt());
            } catch (Exception unavailable) {
                LOG.warn("no layout of the metadata yet: {}", unavailable.toString());
                TimeUnit.MILLISECONDS.sleep(500);
            }
        }
    }

    private void serve(int port) throws Exception {
        partitions.values().forEach(threads::execute);
        try (ServerSocket listening = new ServerSocket(port, 128)) {
            LOG.info("serves");
            while (true) {
                Socket connection = listening.accept();
                threads.execute(() -> answerAll(connection));
            }
        }
    }

    private void answerAll(Socket connection) {
        try (connection;
                BufferedReader lines = new BufferedReader(
                        new InputStreamReader(connection.getInputStream(), StandardCharsets.UTF_8))) {
            connection.setTcpNoDelay(true);
            OutputStream out = connection.getOutputStream();
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                out.write((JSON.writeValueAsString(answer(line)) + "\n").getBytes(StandardCharsets.UTF_8));
                out.flush();
            }
        } catch (java.io.IOException gone) {
            LOG.debug("a client has gone: {}", gone.toString());
        }
    }

    private ObjectNode answer(String line) {
        try {
            return done(JSON.readTree(line));
        } catch (Refusal refusal) {
            return refused(refusal.error, refusal.getMessage());
        } catch (Exception error) {
            Throwable because = error instanceof ExecutionException ? error.getCause() : error;
            return refused("failed", because.toString());
        }
    }

    private static ObjectNode refused(String error, String detail) {
        return JSON.createObjectNode().put("error", error).put("detail", detail);
    }

    private ObjectNode done(JsonNode request) throws Exception {
        String wanted = request.path("f").asText();
        ObjectNode answer = JSON.createObjectNode();
        switch (wanted) {
            case "send":
                long[] at = partition(request).send(JSON.writeValueAsBytes(request.path("messages")));
                return answer.put("place", at[0]).put("entry", at[1]);
            case "read":
                return partition(request).read(request.path("place").asInt(), request.path("entry").asLong()).answer();
            case "read-at":
                Found begin = new Found(request.path("place").asInt(), request.path("entry").asLong());
                return ledgers.readAt(bookie(request), store.read(request.path("partition").asText()).ledgers, begin)
                        .answer();
            case "seal":
                partition(request).seal();
                return answer;
            case "owns":
                return answer.put("owns", partition(request).owns());
            case "replace":
                ledgers.replace(bookie(request));
                return answer;
            case "lives":
                return answer.put("lives", ledgers.lives(bookie(request)));
            case "lack":
                return answer.put("lack", ledgers.lack());
            default:
                throw new Refusal("malformed", "a broker does not know " + wanted);
        }
    }

    private OwnedPartition partition(JsonNode request) throws Refusal {
        OwnedPartition partition = partitions.get(request.path("partition").asText());
        if (partition == null) {
            throw new Refusal("malformed", "there is no such partition");
        }
        return partition;
    }

    private static BookieId bookie(JsonNode request) {
        return BookieId.parse(request.path("bookie").asText());
    }
}
