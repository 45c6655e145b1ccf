# SPDX-License-Identifier: Apache-2.0
"""The fifth set of gpu_wide.py, by application: photo editing, documents, faces, matching and tracking, speech synthesis, images and video
from noise, vision towers of language models, hybrid language models. CASES as in wide_models.py; SCRIPTED are those that torch.jit.trace
exports."""
from application_images import (spread, u2net, modnet, video_matting, rife, raft, arcface, retinaface, lightglue, ddcolor, restormer, stereo, lama)
from application_sounds import kokoro_decoder, vocos, f5_tts, zipformer, band_roformer, denoiser
from model_makers import cfg, df, hf, image, moe, of, plain, restorer, text, wrap, zoo

HYBRID = dict(hidden_size=768, num_attention_heads=12, num_key_value_heads=4, vocab_size=8000, use_cache=False)

CASES = {
    # --- written here, by their architecture
    "u2net": wrap(u2net, plain, ("f", (1, 3, 320, 320))),
    "modnet": wrap(modnet, plain, ("f", (1, 3, 512, 512))),
    "video_matting": wrap(video_matting, plain, ("f", (1, 3, 576, 1024))),
    "rife": wrap(rife, plain, ("f", (1, 6, 480, 832))),
    "raft_small": wrap(raft, lambda m, x: m(x[:, :3], x[:, 3:], num_flow_updates=4)[-1], ("f", (1, 6, 256, 384))),
    "arcface": wrap(arcface, plain, ("f", (4, 3, 112, 112))),
    "retinaface": wrap(retinaface, plain, ("f", (1, 3, 640, 640))),
    "kokoro_decoder": wrap(kokoro_decoder, plain, ("f", (1, 512, 80))),
    "vocos": wrap(vocos, plain, ("f", (1, 100, 200))),
    "f5_tts": wrap(f5_tts, plain, ("f", (2, 400, 100))),
    "zipformer": wrap(zipformer, plain, ("f", (1, 800, 80))),
    "lightglue": wrap(lightglue, plain, ("f", (2, 1024, 256))),
    "ddcolor": wrap(ddcolor, plain, ("f", (1, 3, 512, 512))),
    "restormer": wrap(restormer, plain, ("f", (1, 3, 256, 256))),
    "band_roformer": wrap(band_roformer, plain, ("f", (1, 100, 4100))),
    "denoiser": wrap(denoiser, plain, ("f", (1, 1, 200, 32))),
    "stereo": wrap(stereo, plain, ("f", (1, 6, 256, 512))),
    # --- photo editing
    "lama": wrap(lama, lambda m, x: m(x[:, :3], (x[:, 3:] > 0.5).to(x.dtype)), ("f", (1, 4, 256, 256))),
    "gfpgan": wrap(restorer("GFPGAN", "GFPGANv1Clean", 512, out_size=512, input_is_latent=True, different_w=True, sft_half=True, narrow=1)[0],
        lambda m, x: m(x, return_rgb=False, randomize_noise=False), ("f", (1, 3, 512, 512))),
    "drct": restorer("DRCT", "DRCT", 64, depths=(6, 6), num_heads=(6, 6), upscale=4, window_size=16, upsampler="pixelshuffle"),
    "rgt": restorer("RGT", "RGT", 64, depth=[4, 4], num_heads=[6, 6], mlp_ratio=2, upscale=2, split_size=[8, 32], c_ratio=0.5),
    "grl": restorer("GRL", "GRL", 64, embed_dim=64, upscale=2, depths=[4, 4], num_heads_window=[2, 2], num_heads_stripe=[2, 2], window_size=16,
        stripe_size=[32, 64], mlp_ratio=2, upsampler="pixelshuffledirect"),
    "fdat": restorer("FDAT", "FDAT", 64, scale=2, upsampler_type="pixelshuffle"),
    "safmn": restorer("SAFMN", "SAFMN", 160, dim=36, upscaling_factor=4),
    "span": restorer("SPAN", "SPAN", 256, num_in_ch=3, num_out_ch=3, upscale=2),
    "fbcnn": restorer("FBCNN", "FBCNN", 256),
    "kbnet": restorer("KBNet", "KBNet_s", 256, width=32, enc_blk_nums=[1, 1, 1, 2], middle_blk_num=2, dec_blk_nums=[1, 1, 1, 1]),
    "retinexformer": restorer("RetinexFormer", "RetinexFormer", 256, n_feat=40, stage=1, num_blocks=[1, 2, 2]),
    "seemore": restorer("SeemoRe", "SeemoRe", 128, scale=2, num_layers=6, embedding_dim=36, num_experts=3),
    "mixdehazenet": restorer("MixDehazeNet", "MixDehazeNet", 256),
    # --- documents
    "ppocr_det": wrap(lambda: spread(hf("PPOCRV5MobileDetForObjectDetection", "PPOCRV5MobileDetConfig")(), 1, 3, 640, 640),
        lambda m, x: m(pixel_values=x), ("f", (1, 3, 640, 640))),
    "ppocr_rec": wrap(lambda: spread(hf("PPOCRV5ServerRecForTextRecognition", "PPOCRV5ServerRecConfig")(), 4, 3, 48, 320),
        lambda m, x: m(pixel_values=x), ("f", (4, 3, 48, 320))),
    "uvdoc": wrap(hf("UVDocModel", "UVDocConfig", backbone_config={"model_type": "uvdoc_backbone",
        "out_features": [f"stage{k}" for k in range(1, 7)]}), lambda m, x: m(pixel_values=x), ("f", (1, 3, 712, 488))),
    "doc_layout": wrap(lambda: spread(hf("PPDocLayoutV3ForObjectDetection", "PPDocLayoutV3Config")(), 1, 3, 640, 640),
        lambda m, x: m(pixel_values=x), ("f", (1, 3, 640, 640))),
    "donut_swin": wrap(hf("DonutSwinModel", "DonutSwinConfig", image_size=[960, 640], embed_dim=128, depths=[2, 2, 4, 2],
        num_heads=[4, 8, 16, 32], window_size=10), lambda m, x: m(pixel_values=x), ("f", (1, 3, 960, 640))),
    "trocr_decoder": wrap(of(hf("TrOCRForCausalLM", "TrOCRConfig", decoder_layers=4, vocab_size=8000, is_decoder=True,
        cross_attention_hidden_size=768), "model", "decoder"), lambda m, x, ids: m(input_ids=ids, encoder_hidden_states=x, use_cache=False),
        ("f", (1, 577, 768)), ids=("i", (1, 24), 1000)),
    "table_transformer": image("TableTransformerForObjectDetection", "TableTransformerConfig", 640, use_timm_backbone=False,
        use_pretrained_backbone=False, backbone=None, backbone_config={"model_type": "resnet", "out_features": ["stage4"],
        "layer_type": "basic", "depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512]}),
    # --- detection, segmentation, matting, depth
    "rf_detr": image("RfDetrForObjectDetection", "RfDetrConfig", 512),
    "dinov3": image("DINOv3ViTModel", "DINOv3ViTConfig", 512, num_hidden_layers=6),
    "sam3_vision": wrap(hf("Sam3VisionModel", "Sam3VisionConfig", backbone_config=cfg("Sam3ViTConfig", num_hidden_layers=2, global_attn_indexes=[1])),
        lambda m, x: m(pixel_values=x), ("f", (1, 3, 1008, 1008))),
    "vitmatte": wrap(lambda: spread(hf("VitMatteForImageMatting", "VitMatteConfig", hidden_size=384, fusion_hidden_sizes=[256, 128, 64, 32],
        backbone_config=cfg("VitDetConfig", hidden_size=384, num_attention_heads=6, num_hidden_layers=6, num_channels=4, image_size=512,
        window_size=14, window_block_indices=[0, 1, 3, 4], residual_block_indices=[2, 5], use_relative_position_embeddings=True,
        out_features=["stage6"]))(), 1, 4, 512, 512), lambda m, x: m(pixel_values=x), ("f", (1, 4, 512, 512))),
    # --- matching and tracking
    "efficient_loftr": wrap(hf("EfficientLoFTRModel", "EfficientLoFTRConfig"), lambda m, x: m(pixel_values=x), ("f", (1, 2, 1, 480, 640))),
    # --- speech synthesis and recognition
    "gemma3n_audio": wrap(hf("Gemma3nAudioEncoder", "Gemma3nAudioConfig", conf_num_hidden_layers=3), lambda m, x, mask: m(x, mask == 0),
        ("f", (1, 400, 128)), mask=("1", (1, 400))),
    # --- images, video and sound from noise
    "stable_audio": wrap(df("StableAudioDiTModel", num_layers=4), lambda m, x, text, g, t, a, b: m(x, t, text, g, rotary_embedding=(a, b),
        return_dict=False), ("f", (2, 64, 512)), text=("f", (2, 130, 768)),
        g=("f", (2, 1, 1536)), t=("i", (2,)), a=("f", (513, 32)), b=("f", (513, 32))),
    "ltx_vae_decoder": wrap(of(df("AutoencoderKLLTXVideo", decoder_layers_per_block=(2, 1, 1, 1, 2)), "decoder"), lambda m, x: m(x),
        ("f", (1, 128, 3, 8, 8))),
    # --- hybrid language models
    "jamba": moe("JambaModel", "JambaConfig", 32, num_hidden_layers=4, intermediate_size=2048, num_experts=4, attn_layer_period=4,
        attn_layer_offset=2, expert_layer_period=2, expert_layer_offset=1, use_mamba_kernels=False, **HYBRID),
    "minimax": moe("MiniMaxModel", "MiniMaxConfig", 64, num_hidden_layers=2, intermediate_size=768, num_local_experts=8, head_dim=64, block_size=32,
        layer_types=["linear_attention", "full_attention"], **HYBRID),
    # --- vision towers
    **{name: zoo(name, size) for name, size in (("caformer_s18", 224), ("csatv2", 512))},
}
SCRIPTED = {"safmn", "span", "seemore", "denoiser"}
