"""The S3 sink: objects under the names that Confluent's connector gives them, exactly once."""
