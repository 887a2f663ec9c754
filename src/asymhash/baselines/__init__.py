"""Methods to compare with, one file each; none knows another."""
