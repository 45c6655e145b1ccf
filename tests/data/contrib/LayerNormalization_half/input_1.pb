
BscaleJ¡¾6¼Ò<B5~¾H´]­r½