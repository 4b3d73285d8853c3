// Drives the npm package kafka-connect-client through the life of a connector; prints what it was told.
// Arguments: port, connector config as JSON.
const { KafkaConnectClient } = require("kafka-connect-client");

const [port, text] = process.argv.slice(2);
const config = JSON.parse(text);
const client = new KafkaConnectClient({ protocol: "http", host: "127.0.0.1", port: Number(port) });
const connector = client.connector("from-node");
const told = {};

async function keep(name, request) {
  const response = await request;
  told[name] = { status: response.status, data: response.data };
}

async function untilState(state) {
  for (let turn = 0; turn < 100; turn++) {
    const { data } = await connector.getStatus();
    const states = [data.connector.state, ...data.tasks.map((task) => task.state)];
    if (states.every((one) => one === state)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`the connector does not become ${state}`);
}

async function main() {
  await keep("cluster", client.getCluster());
  await keep("created", client.createConnector("from-node", config));
  await untilState("RUNNING");
  await keep("listed", client.getConnectors());
  await keep("read", connector.get());
  await keep("tasks", connector.getTasks());
  await keep("taskStatus", connector.getTaskStatus(0));
  await keep("paused", connector.pause());
  await untilState("PAUSED");
  await keep("resumed", connector.resume());
  await untilState("RUNNING");
  await keep("restarted", connector.restart({ includeTasks: true }));
  await keep("updated", connector.updateConfig({ ...config, "batch.size": "5" }));
  await keep("config", connector.getConfig());
  await keep("stopped", connector.stop());
  await untilState("STOPPED");
  await keep("offsets", connector.getOffsets());
  await keep("reset", connector.resetOffsets());
  await keep("plugins", client.getConnectorPlugins());
  await keep("validated", client.validateConnectorConfig("FileStreamSource", config));
  await keep("deleted", connector.delete());
  console.log(JSON.stringify(told));
}

main().catch((error) => {
  console.error(error.message, error.response && error.response.data);
  process.exit(1);
});
