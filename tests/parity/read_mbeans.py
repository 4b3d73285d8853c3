"""Prints the MBeans of Kafka Connect at a JMX port as JSON: their attributes by name. A process of its own,
because py4j's objects confuse Python's parser, and with it pytest (cpython issue 106905)."""

from __future__ import annotations

import json
import sys
from typing import Final

from tests.integration.jvm import java_gateway

_OPENED: Final = tuple(
    word
    for package in ("javax.management.remote.rmi", "com.sun.jmx.remote.internal.rmi")
    for word in ("--add-opens", f"java.management.rmi/{package}=ALL-UNNAMED")
)


def main(port: str) -> None:
    with java_gateway(options=_OPENED) as gateway:
        management = gateway.jvm.javax.management
        url = management.remote.JMXServiceURL(f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{port}/jmxrmi")
        connector = management.remote.JMXConnectorFactory.connect(url)
        server = connector.getMBeanServerConnection()
        found = {
            name.getCanonicalName(): [one.getName() for one in server.getMBeanInfo(name).getAttributes()]
            for name in server.queryNames(management.ObjectName("kafka.connect:*"), None)
        }
        connector.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
