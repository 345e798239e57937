"""The ledger of the job: the tables of files that were taken in, of their sums by spool and of runs,
and what follows from them: which records came before."""
