"""The engine: hosting rules, routing events to them, sharing work among them."""
