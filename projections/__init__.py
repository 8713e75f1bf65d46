"""brute.projections, pure folds over the events of a session."""
