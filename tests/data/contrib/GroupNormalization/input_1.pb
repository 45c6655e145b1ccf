BscaleJ„^E?È²¡?ÖS¿ø
é¿