"""What is different for jobs whose records name their targets."""
