"""What the job knows of files and spools: the table of files that were taken in, and their sums by spool."""
