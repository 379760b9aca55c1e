import java.util.List;
import java.util.Map;
import java.util.TreeSet;

import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;

/** Prints a line for each setting of Kafka's clients: the client and the name. */
class ClientSettings {
    public static void main(String[] args) {
        Map<String, ConfigDef> clients = Map.of(
            "producer", ProducerConfig.configDef(),
            "consumer", ConsumerConfig.configDef(),
            "admin", AdminClientConfig.configDef());
        for (String client : List.of("producer", "consumer", "admin")) {
            Map<String, ConfigDef.ConfigKey> keys = clients.get(client).configKeys();
            for (String name : new TreeSet<>(keys.keySet())) {
                if (!keys.get(name).internalConfig) {
                    System.out.println(client + " " + name);
                }
            }
        }
    }
}
