"""A sink that writes JSON files into a folder."""

from icestream.api.config import REQUIRED, ConfigDef, Setting, Type
from icestream.api.connector import JavaClass
from icestream.api.sink import SinkPlugin


class JsonFolderPlugin(SinkPlugin):
    classes = (JavaClass("com.example.JsonFolderSinkConnector", "com.example.JsonFolderSinkTask", "1.0"),)
    settings = ConfigDef((Setting("folder", Type.STRING, REQUIRED, "Where the files go."),))
