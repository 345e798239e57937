"""One module per subcommand of `penstock`; see `edge.cli`."""
