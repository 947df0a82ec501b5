"""Put on the path of the processes that tests start; nothing else may lie here."""
