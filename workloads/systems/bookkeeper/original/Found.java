import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;

/** Entries from a position on, and the position behind them: the place of a ledger in the list, an entry of it. */
final class Found {
    private static final ObjectMapper JSON = new ObjectMapper();

    final List<ArrayNode> entries = new ArrayList<>();
    int place;
    long entry;
    /** A ledger that takes entries kept the read from going on. */
    boolean isOpen;

    Found(int place, long entry) {
        this.place = place;
        this.entry = entry;
    }

    /** The next entry, which is a JSON value. */
    void add(long number, byte[] payload) throws Exception {
        JsonNode messages = JSON.readTree(payload);
        entries.add(JSON.createArrayNode().add(place).add(number).add(messages));
        entry = number + 1;
    }

    void pass() {
        entry++;
    }

    void nextLedger() {
        place++;
        entry = 0;
    }

    ObjectNode answer() {
        ObjectNode answer = JSON.createObjectNode();
        answer.set("entries", JSON.valueToTree(entries));
        return answer.put("place", place).put("entry", entry).put("open", isOpen);
    }
}
