"""What people say and what the robot feels becomes an interrupt; and a record of what each one did."""
