"""Signs certificates, draws them and verifies them."""
