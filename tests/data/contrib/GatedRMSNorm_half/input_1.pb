
BscaleJ
¡»sº=ˆ¾h6