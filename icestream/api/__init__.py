"""The vocabulary: facts and borders. No I/O, no Spark, nothing of ours imported."""
