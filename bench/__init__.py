"""`make bench`: one topic drained by the real Kafka Connect and by Icestream, in turn, on one machine."""
