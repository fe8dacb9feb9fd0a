"""What holds of every rewrite, whatever was written and whatever the policies ask for."""
