"""Models compared by what they say of data that were held out, and the best of them fitted."""
