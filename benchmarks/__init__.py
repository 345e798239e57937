"""What penstock can do on one machine, measured: one file per question."""
