"""The page of the running gateway: static files, served by `edge.monitor.console`. No build step."""
