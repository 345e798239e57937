"""The page of the running gateway: static files, served by `console`. No build step."""
