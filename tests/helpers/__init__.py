"""What tests share: slow and obvious references, tiny corpora, a local web site."""
