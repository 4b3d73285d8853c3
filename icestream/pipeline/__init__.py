"""The data plane: one batch, from read to staged, as one Spark job."""
