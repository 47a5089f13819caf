"""What every REST door shares: strict input, cursors, the view that enters the scope. Knows HTTP; decides nothing."""
