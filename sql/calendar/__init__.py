"""Time as people count it: periods with months, the grid windows are aligned to, crontabs.
No clock is read here."""
