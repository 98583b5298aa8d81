"""Complete decisions of serializability and snapshot isolation, with or without sessions and real time."""
