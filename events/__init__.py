"""brute.events, the log: messages and events, the codec that stores them, and the stores."""
