"""Calendar time: periods with months, the grid that windows are aligned to, crontabs. No clock is read
here."""
