"""`icestream doctor`: what keeps a worker or a connector from work, asked from outside."""
