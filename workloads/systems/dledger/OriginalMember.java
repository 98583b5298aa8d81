import com.alibaba.fastjson.JSON;
import io.openmessaging.storage.dledger.DLedgerConfig;
import io.openmessaging.storage.dledger.DLedgerServer;
import java.nio.file.Files;
import java.nio.file.Path;

public class OriginalMember {
    public static void main(String[] arguments) throws Exception {
        String settings = Files.readString(Path.of(arguments[0]));
        DLedgerServer server = new DLedgerServer(JSON.parseObject(settings, DLedgerConfig.class));
        Runtime.getRuntime().addShutdownHook(new Thread(server::shutdown));
        server.startup();
    }
}
