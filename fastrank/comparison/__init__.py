"""What may be concluded from results: intervals, paired tests, corrections, power, agreement, and notes that warn of false conclusions."""
