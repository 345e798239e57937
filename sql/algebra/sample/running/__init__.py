"""Groups that events leave one by one, kept by statements of the loop."""
