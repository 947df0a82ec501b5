"""Before and after one calibration: plan the sample, watch the promise, learn from reviews."""
