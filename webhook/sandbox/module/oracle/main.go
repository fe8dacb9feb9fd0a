package main

import "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

func main() { _ = fieldpath.NewSet() }
