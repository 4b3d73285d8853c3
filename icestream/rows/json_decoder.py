"""Where `Refused` was; `pipeline` still imports it from here."""

from icestream.jsontext.table_rows import Refused as Refused
