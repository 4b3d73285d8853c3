"""A source that counts: its records are the numbers from 0 on."""

from icestream.api.config import REQUIRED, ConfigDef, Setting, Type
from icestream.api.connector import JavaClass
from icestream.api.source import SourcePlugin


class CounterPlugin(SourcePlugin):
    classes = (JavaClass("com.example.CounterSourceConnector", "com.example.CounterSourceTask", "1.0"),)
    settings = ConfigDef((Setting("topic", Type.STRING, REQUIRED, "The topic that gets the numbers."),))
