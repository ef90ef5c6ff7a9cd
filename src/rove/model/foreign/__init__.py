"""What others sent: numbers and bytes that are checked before they are used."""
