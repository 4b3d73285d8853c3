"""Jobs in processes of their own."""
