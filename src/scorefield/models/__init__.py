"""What is learned from a table: energies of rows, densities of classes, rules, calibration, choice of rows."""
