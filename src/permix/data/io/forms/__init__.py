"""Tables as forms and people write them: names of questions, ranks in words, words of a scale."""
