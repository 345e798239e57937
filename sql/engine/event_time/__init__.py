"""Event time: the stage that orders events, alone or shared, before a rule."""
