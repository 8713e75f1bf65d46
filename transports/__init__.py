"""brute.transports, one file for each library or wire format."""
