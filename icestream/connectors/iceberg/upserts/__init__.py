"""Changes of rows: staged, merged by Spark, published with the checkpoint."""
