import java.io.File;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.server.Main;

/** A bookie of the release. The first of a new cluster lays out the metadata, and each waits for the store of these. */
public class OriginalBookie {
    public static void main(String[] arguments) throws Exception {
        ServerConfiguration settings = new ServerConfiguration();
        settings.loadConf(new File(arguments[0]).toURI().toURL());
        while (true) {
            try {
                BookKeeperAdmin.initNewCluster(settings);
                break;
            } catch (Exception unavailableOrAnotherIsFirst) {
                System.out.println("no layout of the metadata yet: " + unavailableOrAnotherIsFirst);
                TimeUnit.MILLISECONDS.sleep(500);
            }
        }
        Main.main(new String[] {"--conf", arguments[0]});
    }
}
